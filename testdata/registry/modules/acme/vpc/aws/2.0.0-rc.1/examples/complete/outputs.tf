output "vpc_id" {
  description = "ID of the VPC."
  value       = module.vpc.id
}

output "allow_list" {
  description = "Addresses to tell partners, who let requests from them in."
  value       = values(module.vpc.nat_addresses)
}
