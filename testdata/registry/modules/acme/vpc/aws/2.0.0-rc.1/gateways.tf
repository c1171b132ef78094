locals {
  nat_zones = {
    none   = []
    single = slice(local.zones, 0, 1)
    zonal  = local.zones
  }[var.nat]
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = merge(local.tags, { Name = var.name })
}

resource "aws_egress_only_internet_gateway" "this" {
  count = var.ipv6 ? 1 : 0

  vpc_id = aws_vpc.this.id
  tags   = merge(local.tags, { Name = var.name })
}

resource "aws_eip" "nat" {
  for_each = toset(local.nat_zones)

  domain = "vpc"
  tags   = merge(local.tags, { Name = "${var.name}-nat-${each.value}" })

  # The address is released before its gateway is gone otherwise.
  depends_on = [aws_internet_gateway.this]
}

resource "aws_nat_gateway" "this" {
  for_each = toset(local.nat_zones)

  allocation_id = aws_eip.nat[each.value].id
  subnet_id     = module.public_subnets.ids[each.value]
  tags          = merge(local.tags, { Name = "${var.name}-${each.value}" })
}
