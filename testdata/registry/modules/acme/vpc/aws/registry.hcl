description = "A VPC with public and private subnets in every availability zone, one NAT gateway each, and flow logs"
source      = "https://github.com/acme/terraform-aws-vpc"
owner       = "platform team"

deprecated "< 1.3.0" {
  reason = "It gets no more fixes: use 1.4 or newer"
  link   = "https://github.com/acme/terraform-aws-vpc/blob/main/CHANGELOG.md"
}

withdrawn "1.3.1" {
  reason = "Its endpoints admit everyone, not only the VPC"
}
