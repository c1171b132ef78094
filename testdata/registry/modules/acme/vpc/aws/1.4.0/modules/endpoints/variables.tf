variable "name" {
  description = "Prefix of the names of the endpoints; the service is added."
  type        = string
}

variable "vpc_id" {
  description = "ID of the VPC."
  type        = string
}

variable "region" {
  description = "Region of the VPC, which is part of the names of services."
  type        = string
}

variable "endpoints" {
  description = "The endpoints by service. `Gateway` endpoints, for `s3` and `dynamodb`, are free of charge."
  type = map(object({
    type            = optional(string, "Interface")
    private_dns     = optional(bool, true)
    security_groups = optional(list(string), [])
  }))

  validation {
    condition     = alltrue([for e in values(var.endpoints) : contains(["Interface", "Gateway"], e.type)])
    error_message = "An endpoint is of type Interface or Gateway."
  }
}

variable "subnet_ids" {
  description = "Subnets in which interface endpoints get an address."
  type        = list(string)
  default     = []
}

variable "route_table_ids" {
  description = "Route tables that lead to gateway endpoints."
  type        = list(string)
  default     = []
}

variable "policy" {
  description = "Policy of all endpoints as JSON. Full access if this is null."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything that is created."
  type        = map(string)
  default     = {}
}
