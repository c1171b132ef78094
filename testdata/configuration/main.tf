# What a user of the sample registry writes: a provider and a module of it.
terraform {
  required_providers {
    demo = {
      source  = "127.0.0.1:8443/acme/demo"
      version = ">= 1.0.0"
    }
  }
}

module "name" {
  source  = "127.0.0.1:8443/acme/naming/any"
  version = "~> 1.0"
  team    = "Acme"
  service = "Shop"
}

resource "demo_greeting" "hello" {
  name = module.name.name
}

output "greeting" {
  value = demo_greeting.hello.text
}
