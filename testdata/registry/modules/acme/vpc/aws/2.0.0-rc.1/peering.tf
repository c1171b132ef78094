resource "aws_vpc_peering_connection" "this" {
  for_each = var.peers

  vpc_id        = aws_vpc.this.id
  peer_vpc_id   = each.value.vpc_id
  peer_owner_id = each.value.account_id
  peer_region   = each.value.region
  tags          = merge(local.tags, { Name = "${var.name}-${each.key}" })
}

locals {
  peer_routes = {
    for pair in setproduct(keys(var.peers), keys(aws_route_table.private)) :
    join("/", pair) => { peer = pair[0], zone = pair[1] }
  }
}

resource "aws_route" "peer" {
  for_each = local.peer_routes

  route_table_id            = aws_route_table.private[each.value.zone].id
  destination_cidr_block    = var.peers[each.value.peer].cidr
  vpc_peering_connection_id = aws_vpc_peering_connection.this[each.value.peer].id
}
