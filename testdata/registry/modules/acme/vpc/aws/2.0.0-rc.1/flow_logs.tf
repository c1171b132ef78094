resource "aws_cloudwatch_log_group" "flow_logs" {
  count = var.flow_logs == null ? 0 : 1

  name              = "/acme/vpc/${var.name}"
  retention_in_days = var.flow_logs.days
  kms_key_id        = var.flow_logs.kms_key_arn
  tags              = local.tags
}

resource "aws_flow_log" "this" {
  count = var.flow_logs == null ? 0 : 1

  vpc_id                   = aws_vpc.this.id
  traffic_type             = var.flow_logs.traffic
  max_aggregation_interval = var.flow_logs.interval
  log_destination          = aws_cloudwatch_log_group.flow_logs[0].arn
  iam_role_arn             = aws_iam_role.flow_logs[0].arn
  tags                     = local.tags
}

data "aws_iam_policy_document" "flow_logs_trust" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["vpc-flow-logs.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "flow_logs" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
    resources = [for g in aws_cloudwatch_log_group.flow_logs : "${g.arn}:*"]
  }
}

resource "aws_iam_role" "flow_logs" {
  count = var.flow_logs == null ? 0 : 1

  name_prefix        = "${var.name}-flow-logs-"
  assume_role_policy = data.aws_iam_policy_document.flow_logs_trust.json
  tags               = local.tags
}

resource "aws_iam_role_policy" "flow_logs" {
  count = var.flow_logs == null ? 0 : 1

  name   = "write"
  role   = aws_iam_role.flow_logs[0].id
  policy = data.aws_iam_policy_document.flow_logs.json
}
