output "id" {
  description = "ID of the VPC."
  value       = aws_vpc.this.id
}

output "arn" {
  description = "ARN of the VPC."
  value       = aws_vpc.this.arn
}

output "zones" {
  description = "The availability zones in use, in order."
  value       = local.zones
}

output "public_subnet_ids" {
  description = "IDs of the public subnets by zone."
  value       = module.public_subnets.ids
}

output "private_subnet_ids" {
  description = "IDs of the private subnets by zone."
  value       = module.private_subnets.ids
}

output "natgw_ids" {
  description = "IDs of the NAT gateways. With `single_nat` there is one."
  value       = [for g in aws_nat_gateway.this : g.id]
}

output "nat_ips" {
  description = "Public addresses from which private subnets reach the internet."
  value       = [for a in aws_eip.nat : a.public_ip]
}

output "endpoint_ids" {
  description = "IDs of the VPC endpoints by service."
  value       = length(var.endpoints) > 0 ? module.endpoints[0].ids : {}
}

output "vpn_configurations" {
  description = "What the router of each site needs, as XML. It contains the preshared keys."
  value       = { for name, c in aws_vpn_connection.site : name => c.customer_gateway_configuration }
  sensitive   = true
}
