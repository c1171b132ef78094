description = "Greets people, and tells which build of itself is running"
source      = "https://github.com/acme/terraform-provider-demo"
owner       = "platform team"
