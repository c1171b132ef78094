variable "name" {
  description = "Prefix of the names of everything that is created."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,22}[a-z0-9]$", var.name))
    error_message = "The name must be 3 to 24 lower-case letters, digits and dashes, and begin with a letter."
  }
}

variable "cidr" {
  description = "Address range of the VPC, from `/16` to `/24`. It cannot be changed later."
  type        = string
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.cidr))
    error_message = "The range must be in CIDR notation, as in 10.20.0.0/16."
  }

  validation {
    condition     = try(tonumber(split("/", var.cidr)[1]) >= 16 && tonumber(split("/", var.cidr)[1]) <= 24, false)
    error_message = "The range must be between /16 and /24."
  }
}

variable "secondary_cidrs" {
  description = "Further address ranges, for pods for example. No subnets are made in them."
  type        = list(string)
  default     = []
}

variable "zones" {
  description = "Availability zones to use, at most three. The first three of the region if this is null."
  type        = list(string)
  default     = null

  validation {
    condition     = var.zones == null ? true : length(var.zones) >= 1 && length(var.zones) <= 3
    error_message = "One to three zones can be used."
  }
}

variable "tenancy" {
  description = "Tenancy of instances: `default` or `dedicated`."
  type        = string
  default     = "default"

  validation {
    condition     = contains(["default", "dedicated"], var.tenancy)
    error_message = "The tenancy must be default or dedicated."
  }
}

variable "ipv6" {
  description = "Whether the VPC also gets an IPv6 range, with an egress-only gateway for its private subnets."
  type        = bool
  default     = false
}

variable "nat" {
  description = <<-EOT
    NAT gateways of the private subnets:

    - `zonal`: one in each zone,
    - `single`: one for all zones, which costs less and fails together,
    - `none`: private subnets do not reach the internet.
  EOT
  type        = string
  default     = "zonal"

  validation {
    condition     = contains(["zonal", "single", "none"], var.nat)
    error_message = "NAT is zonal, single or none."
  }
}

variable "dns" {
  description = "DNS settings. With a `domain`, a DHCP option set is made for it and its `servers`."
  type = object({
    hostnames = optional(bool, true)
    domain    = optional(string)
    servers   = optional(list(string), ["AmazonProvidedDNS"])
  })
  default = {}
}

variable "flow_logs" {
  description = <<-EOT
    Flow logs of the whole VPC in CloudWatch Logs; none if this is null.

    | attribute | meaning |
    |---|---|
    | `days` | how long they are kept |
    | `traffic` | `ACCEPT`, `REJECT` or `ALL` |
    | `interval` | seconds that one record covers: 60 or 600 |
    | `kms_key_arn` | the key that encrypts them |
  EOT
  type = object({
    days        = optional(number, 30)
    traffic     = optional(string, "ALL")
    interval    = optional(number, 600)
    kms_key_arn = optional(string)
  })
  default = null

  validation {
    condition     = var.flow_logs == null ? true : contains(["ACCEPT", "REJECT", "ALL"], var.flow_logs.traffic)
    error_message = "Flow logs record ACCEPT, REJECT or ALL traffic."
  }

  validation {
    condition     = var.flow_logs == null ? true : contains([60, 600], var.flow_logs.interval)
    error_message = "The interval of flow logs must be 60 or 600 seconds."
  }
}

variable "endpoints" {
  description = "VPC endpoints by service, for example `s3`, `ecr.api` or `sts`. The type decides what it costs."
  type = map(object({
    type            = optional(string, "Interface")
    private_dns     = optional(bool, true)
    security_groups = optional(list(string), [])
  }))
  default = {}
}

variable "endpoint_policy" {
  description = "Policy of all endpoints as JSON. Full access if this is null."
  type        = string
  default     = null
}

variable "vpn_sites" {
  description = "Sites with a VPN connection, by name: their public address and BGP number."
  type = map(object({
    address = string
    asn     = optional(number, 65000)
  }))
  default = {}
}

variable "vpn_preshared_keys" {
  description = "Preshared keys by site. AWS makes one up where there is none."
  type        = map(string)
  default     = {}
  sensitive   = true
}

variable "subnet_tags" {
  description = "Further tags of the subnets, by tier: `public` and `private`. Kubernetes finds its subnets by them."
  type        = map(map(string))
  default = {
    public  = { "kubernetes.io/role/elb" = "1" }
    private = { "kubernetes.io/role/internal-elb" = "1" }
  }
}

variable "tags" {
  description = "Tags of everything that is created."
  type        = map(string)
  default     = {}
}

variable "peers" {
  description = "VPCs to peer with, by name. Each has to accept the connection; the private subnets get a route to its range."
  type = map(object({
    vpc_id     = string
    cidr       = string
    account_id = optional(string)
    region     = optional(string)
  }))
  default = {}
}
