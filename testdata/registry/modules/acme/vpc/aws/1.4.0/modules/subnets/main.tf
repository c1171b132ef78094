terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
  }
}

variable "name" {
  description = "Prefix of the names of the subnets; the zone is added."
  type        = string
}

variable "vpc_id" {
  description = "ID of the VPC."
  type        = string
}

variable "zones" {
  description = "Availability zones, one subnet in each."
  type        = list(string)
}

variable "cidrs" {
  description = "Address ranges of the subnets, in the order of the zones."
  type        = list(string)
}

variable "public_ip" {
  description = "Whether instances get a public address."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of the subnets."
  type        = map(string)
  default     = {}
}

resource "aws_subnet" "this" {
  for_each = zipmap(var.zones, var.cidrs)

  vpc_id                  = var.vpc_id
  availability_zone       = each.key
  cidr_block              = each.value
  map_public_ip_on_launch = var.public_ip
  tags                    = merge(var.tags, { Name = "${var.name}-${each.key}" })
}

output "ids" {
  description = "IDs of the subnets by zone."
  value       = { for zone, s in aws_subnet.this : zone => s.id }
}

output "cidrs" {
  description = "Address ranges of the subnets by zone."
  value       = { for zone, s in aws_subnet.this : zone => s.cidr_block }
}
