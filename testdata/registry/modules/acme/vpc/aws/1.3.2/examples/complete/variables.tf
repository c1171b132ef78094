variable "region" {
  description = "Where to try it."
  type        = string
  default     = "eu-central-1"
}

variable "vpn_preshared_keys" {
  description = "Preshared keys by site."
  type        = map(string)
  sensitive   = true
}
