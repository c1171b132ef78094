output "private_subnets" {
  description = "The private subnets by zone"
}
