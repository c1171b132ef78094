module "network" {
  source = "../../"
  name   = "minimal"
  cidr   = "10.0.0.0/20"
}
