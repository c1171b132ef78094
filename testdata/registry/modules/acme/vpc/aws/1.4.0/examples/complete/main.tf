provider "aws" {
  region = var.region
}

# The names of Acme are made in one place.
module "name" {
  source  = "registry.example.com/acme/naming/any"
  version = "~> 1.0"

  team    = "platform"
  service = "shop"
}

module "vpc" {
  source = "../../"

  name            = module.name.name
  cidr            = "10.20.0.0/16"
  secondary_cidrs = ["100.64.0.0/16"]
  ipv6            = true

  dns = {
    domain  = "shop.internal"
    servers = ["10.20.0.2"]
  }

  flow_logs = {
    days    = 90
    traffic = "REJECT"
  }

  endpoints = {
    s3        = { type = "Gateway" }
    "ecr.api" = {}
    "ecr.dkr" = {}
    sts       = {}
  }

  vpn_sites = {
    berlin = { address = "203.0.113.10" }
  }
  vpn_preshared_keys = var.vpn_preshared_keys

  tags = {
    cost-center = "4711"
  }
}
