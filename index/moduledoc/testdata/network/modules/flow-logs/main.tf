variable "for_terraform_only" {}
