variable "parts" {
  type = list(string)
}

output "text" {
  value = lower(join("-", var.parts))
}
