variable "owner" {
  description = "Who is asked when something is unclear."
  type        = string
}

variable "more" {
  description = "Further tags."
  type        = map(string)
  default     = {}
}

output "tags" {
  description = "All tags."
  value       = merge({ owner = var.owner }, var.more)
}
