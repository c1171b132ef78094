# What is left of older versions. OpenTofu reads compatibility.tofu instead,
# which tells callers that it is deprecated: Terraform before 1.15 does not know
# this argument.

variable "enable_ipv6" {
  description = "Use `ipv6`."
  type        = bool
  default     = null
}

output "natgw_ids" {
  description = "Use `nat_gateway_ids`."
  value       = [for g in aws_nat_gateway.this : g.id]
}
