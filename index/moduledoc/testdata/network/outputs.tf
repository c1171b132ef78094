output "id" {
  description = "The VPC"
  value       = aws_vpc.this.id
}

output "private_subnets" {
  value = { for name, zone in module.subnets : name => zone.private }
}

output "vpn_key" {
  description = "Private key of the VPN"
  value       = tls_private_key.vpn.private_key_pem
  sensitive   = true
}

output "arn" {
  value      = aws_vpc.this.arn
  deprecated = "Use id."
}
