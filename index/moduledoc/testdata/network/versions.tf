terraform {
  required_version = ">= 1.5, < 3.0"

  required_providers {
    aws = {
      source                = "hashicorp/aws"
      version               = ">= 5.40"
      configuration_aliases = [aws.peer]
    }
    random = ">= 3.0" # the old form
    names = {
      source = "registry.example.com/acme/names"
    }
  }
}
