resource "aws_network_acl" "public" {
  count = var.protect ? 1 : 0

  vpc_id     = aws_vpc.this.id
  subnet_ids = values(module.public_subnets.ids)
  tags       = merge(local.tags, { Name = "${var.name}-public" })
}

resource "aws_network_acl_rule" "no_remote_login" {
  for_each = var.protect ? { ssh = 22, rdp = 3389 } : {}

  network_acl_id = aws_network_acl.public[0].id
  rule_number    = each.value == 22 ? 10 : 11
  rule_action    = "deny"
  protocol       = "tcp"
  cidr_block     = "0.0.0.0/0"
  from_port      = each.value
  to_port        = each.value
}

resource "aws_network_acl_rule" "rest" {
  for_each = var.protect ? { in = false, out = true } : {}

  network_acl_id = aws_network_acl.public[0].id
  egress         = each.value
  rule_number    = 100
  rule_action    = "allow"
  protocol       = "-1"
  cidr_block     = "0.0.0.0/0"
}
