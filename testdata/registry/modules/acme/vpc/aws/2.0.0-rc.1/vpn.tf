resource "aws_vpn_gateway" "this" {
  count = length(var.vpn_sites) > 0 ? 1 : 0

  vpc_id = aws_vpc.this.id
  tags   = merge(local.tags, { Name = var.name })
}

resource "aws_customer_gateway" "site" {
  for_each = var.vpn_sites

  type       = "ipsec.1"
  bgp_asn    = each.value.asn
  ip_address = each.value.address
  tags       = merge(local.tags, { Name = "${var.name}-${each.key}" })
}

resource "aws_vpn_connection" "site" {
  for_each = var.vpn_sites

  type                  = "ipsec.1"
  vpn_gateway_id        = aws_vpn_gateway.this[0].id
  customer_gateway_id   = aws_customer_gateway.site[each.key].id
  tunnel1_preshared_key = lookup(var.vpn_preshared_keys, each.key, null)
  tags                  = merge(local.tags, { Name = "${var.name}-${each.key}" })
}

resource "aws_vpn_gateway_route_propagation" "private" {
  for_each = length(var.vpn_sites) > 0 ? aws_route_table.private : {}

  vpn_gateway_id = aws_vpn_gateway.this[0].id
  route_table_id = each.value.id
}
