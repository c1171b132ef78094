variable "network" {
  type = string
}

resource "aws_subnet" "private" {
  vpc_id = var.network
}

output "private" {
  value = aws_subnet.private.id
}
