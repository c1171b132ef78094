locals {
  zones = coalesce(var.zones, slice(data.aws_availability_zones.available.names, 0, 3))

  # Public subnets take the first quarter of the range, private ones the rest:
  # a /16 over three zones makes public /20 and private /18 subnets.
  public_range  = cidrsubnet(var.cidr, 2, 0)
  public_cidrs  = [for i in range(length(local.zones)) : cidrsubnet(local.public_range, 2, i)]
  private_cidrs = [for i in range(length(local.zones)) : cidrsubnet(var.cidr, 2, i + 1)]

  tags = merge(var.tags, { "acme:module" = "acme/vpc/aws" })
}

data "aws_availability_zones" "available" {
  state = "available"
}

data "aws_region" "current" {}

resource "aws_vpc" "this" {
  cidr_block                       = var.cidr
  instance_tenancy                 = var.tenancy
  enable_dns_support               = true
  enable_dns_hostnames             = var.dns.hostnames
  assign_generated_ipv6_cidr_block = var.ipv6

  tags = merge(local.tags, { Name = var.name })
}

resource "aws_vpc_ipv4_cidr_block_association" "secondary" {
  for_each = toset(var.secondary_cidrs)

  vpc_id     = aws_vpc.this.id
  cidr_block = each.value
}

# Nothing may use the default group: it is stripped of its rules.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id
  tags   = merge(local.tags, { Name = "${var.name}-unused" })
}

resource "aws_vpc_dhcp_options" "this" {
  count = var.dns.domain == null ? 0 : 1

  domain_name         = var.dns.domain
  domain_name_servers = var.dns.servers
  tags                = merge(local.tags, { Name = var.name })
}

resource "aws_vpc_dhcp_options_association" "this" {
  count = var.dns.domain == null ? 0 : 1

  vpc_id          = aws_vpc.this.id
  dhcp_options_id = aws_vpc_dhcp_options.this[0].id
}

module "public_subnets" {
  source = "./modules/subnets"

  name      = "${var.name}-public"
  vpc_id    = aws_vpc.this.id
  zones     = local.zones
  cidrs     = local.public_cidrs
  public_ip = true
  tags      = merge(local.tags, lookup(var.subnet_tags, "public", {}))
}

module "private_subnets" {
  source = "./modules/subnets"

  name   = "${var.name}-private"
  vpc_id = aws_vpc.this.id
  zones  = local.zones
  cidrs  = local.private_cidrs
  tags   = merge(local.tags, lookup(var.subnet_tags, "private", {}))
}

module "endpoints" {
  source = "./modules/endpoints"
  count  = length(var.endpoints) > 0 ? 1 : 0

  name            = var.name
  vpc_id          = aws_vpc.this.id
  region          = data.aws_region.current.region
  subnet_ids      = values(module.private_subnets.ids)
  route_table_ids = [for t in aws_route_table.private : t.id]
  endpoints       = var.endpoints
  policy          = var.endpoint_policy
  tags            = local.tags
}
