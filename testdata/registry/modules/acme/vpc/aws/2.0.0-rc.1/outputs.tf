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

output "nat_gateway_ids" {
  description = "IDs of the NAT gateways by zone. There is one where `nat` is `single`."
  value       = { for zone, g in aws_nat_gateway.this : zone => g.id }
}

output "nat_addresses" {
  description = "Public addresses from which private subnets reach the internet, by zone, for the allow lists of others."
  value       = { for zone, a in aws_eip.nat : zone => a.public_ip }
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
