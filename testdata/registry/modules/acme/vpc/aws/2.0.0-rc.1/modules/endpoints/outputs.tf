output "ids" {
  description = "IDs of the endpoints by service."
  value       = { for service, e in merge(aws_vpc_endpoint.interface, aws_vpc_endpoint.gateway) : service => e.id }
}

output "security_group_id" {
  description = "ID of the security group of the interface endpoints; null if there are none."
  value       = one(aws_security_group.endpoints[*].id)
}
