module "vpc" {
  source = "../../"

  name = "minimal"
  cidr = "10.20.0.0/16"
}

output "vpc_id" {
  description = "ID of the VPC."
  value       = module.vpc.id
}
