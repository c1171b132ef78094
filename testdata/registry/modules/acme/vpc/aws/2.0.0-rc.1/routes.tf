resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id
  tags   = merge(local.tags, { Name = "${var.name}-public" })
}

resource "aws_route" "public_internet" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "public" {
  for_each = module.public_subnets.ids

  subnet_id      = each.value
  route_table_id = aws_route_table.public.id
}

# A table for each zone, so that a zone keeps its own NAT gateway.
resource "aws_route_table" "private" {
  for_each = toset(local.zones)

  vpc_id = aws_vpc.this.id
  tags   = merge(local.tags, { Name = "${var.name}-private-${each.value}" })
}

resource "aws_route" "private_nat" {
  for_each = var.nat == "none" ? {} : aws_route_table.private

  route_table_id         = each.value.id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.this[var.nat == "single" ? local.zones[0] : each.key].id
}

resource "aws_route" "private_ipv6" {
  for_each = var.ipv6 ? aws_route_table.private : {}

  route_table_id              = each.value.id
  destination_ipv6_cidr_block = "::/0"
  egress_only_gateway_id      = aws_egress_only_internet_gateway.this[0].id
}

resource "aws_route_table_association" "private" {
  for_each = module.private_subnets.ids

  subnet_id      = each.value
  route_table_id = aws_route_table.private[each.key].id
}
