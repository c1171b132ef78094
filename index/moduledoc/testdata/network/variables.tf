variable "name" {
  description = "Name of the network: it begins the names of all resources."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,30}$", var.name))
    error_message = "The name has 3 to 31 letters, digits and dashes, and begins with a letter."
  }
  validation {
    condition     = !endswith(var.name, "-")
    error_message = "The name does not end with a dash."
  }
}

variable "cidr" {
  description = <<-EOT
    The network's addresses. They are divided among the zones:

    * half of them for private subnets
      (databases included)
    * a quarter for public ones
  EOT
  type        = string
}

variable "zones" {
  description = "How many zones, or which ones"
  type        = any
  default     = 3
}

variable "subnets" {
  description = "What is wanted besides the usual subnets"
  type = map(object({
    newbits = optional(number, 4) # of the network's prefix
    public  = optional(bool, false)
    tags    = optional(map(string), {})
  }))
  default  = {}
  nullable = false
}

variable "peering" {
  type = object({ network = string, routes = list(string) })
  default = {
    network = "vpc-0123456789abcdef0"
    routes = [
      "10.0.0.0/8", // everything
      "192.168.0.0/16",
    ]
  }
}

variable "flow_logs_token" {
  type      = string
  default   = null
  sensitive = true
  ephemeral = true
}

variable "nat" {
  type       = bool
  default    = true
  deprecated = "Use nat_gateways."
}

variable "budget" {
  default = -1.5e400
}

variable "tags" {
  type    = map(string)
  default = { "Managed by" = "Terraform", team = upper("network") }
}
