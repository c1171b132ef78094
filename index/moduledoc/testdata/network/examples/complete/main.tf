provider "aws" {
  region = "eu-central-1"
}

module "network" {
  source = "../.."
  name   = "production"
  cidr   = "10.20.0.0/16"
}

output "network" {
  value = module.network
}

variable "unfinished" {
  type = list(
