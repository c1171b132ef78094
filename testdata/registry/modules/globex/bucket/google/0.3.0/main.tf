terraform {
  required_version = ">= 1.5"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 6.0"
    }
  }
}

variable "name" {
  description = "Name of the bucket, which is unique in the world."
  type        = string
}

variable "location" {
  description = "Region or multi-region."
  type        = string
  default     = "EU"
}

variable "readers" {
  description = "Who may read, as IAM members."
  type        = list(string)
  default     = []
}

resource "google_storage_bucket" "this" {
  name                        = var.name
  location                    = var.location
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
}

resource "google_storage_bucket_iam_member" "readers" {
  for_each = toset(var.readers)

  bucket = google_storage_bucket.this.name
  role   = "roles/storage.objectViewer"
  member = each.value
}

output "url" {
  description = "URL of the bucket, as gs://NAME."
  value       = google_storage_bucket.this.url
}
