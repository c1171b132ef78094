variable "team" {
  type = string
}

variable "service" {
  type = string
}

module "label" {
  source = "./modules/label"
  parts  = [var.team, var.service]
}

output "name" {
  value = module.label.text
}
