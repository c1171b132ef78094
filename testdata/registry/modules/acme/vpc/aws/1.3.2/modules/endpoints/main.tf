locals {
  interfaces = { for service, e in var.endpoints : service => e if e.type == "Interface" }
  gateways   = { for service, e in var.endpoints : service => e if e.type == "Gateway" }
}

data "aws_vpc" "this" {
  id = var.vpc_id
}

resource "aws_security_group" "endpoints" {
  count = length(local.interfaces) > 0 ? 1 : 0

  name_prefix = "${var.name}-endpoints-"
  description = "HTTPS from the VPC to its endpoints"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "https" {
  count = length(local.interfaces) > 0 ? 1 : 0

  security_group_id = aws_security_group.endpoints[0].id
  cidr_ipv4         = data.aws_vpc.this.cidr_block
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_endpoint" "interface" {
  for_each = local.interfaces

  vpc_id              = var.vpc_id
  vpc_endpoint_type   = "Interface"
  service_name        = "com.amazonaws.${var.region}.${each.key}"
  subnet_ids          = var.subnet_ids
  security_group_ids  = concat([aws_security_group.endpoints[0].id], each.value.security_groups)
  private_dns_enabled = each.value.private_dns
  policy              = var.policy
  tags                = merge(var.tags, { Name = "${var.name}-${each.key}" })
}

resource "aws_vpc_endpoint" "gateway" {
  for_each = local.gateways

  vpc_id            = var.vpc_id
  vpc_endpoint_type = "Gateway"
  service_name      = "com.amazonaws.${var.region}.${each.key}"
  route_table_ids   = var.route_table_ids
  policy            = var.policy
  tags              = merge(var.tags, { Name = "${var.name}-${each.key}" })
}
