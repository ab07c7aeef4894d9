# The provider is one of the Region us-east-2.
variable "topics" {
  description = "ARNs of SNS topics that alarms are sent to"
  type        = list(string)
  default     = []
}

# Apply it with a provider of us-east-2, version 6.22 or later.
resource "aws_dynamodb_table" "leasehold" {
  name                        = "admiral-lease"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "leaseName"
  deletion_protection_enabled = true

  attribute {
    name = "leaseName"
    type = "S"
  }

  replica {
    region_name                 = "us-west-2"
    consistency_mode            = "STRONG"
    deletion_protection_enabled = true
  }

  global_table_witness {
    region_name = "us-east-1"
  }

  lifecycle {
    prevent_destroy = true
  }
}

locals {
  tables = [
    aws_dynamodb_table.leasehold.arn,
    replace(aws_dynamodb_table.leasehold.arn, ":us-east-2:", ":us-west-2:"),
  ]
}

# For each instance.
data "aws_iam_policy_document" "instance" {
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    resources = local.tables

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["prod", "leasehold-token?prod", ".standby/prod", "leasehold-token?.standby/prod"]
    }
  }

  statement {
    actions   = ["dynamodb:GetItem"]
    resources = local.tables

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = [".lock/prod", "leasehold-token?.lock/prod"]
    }
  }

  statement {
    actions   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
    resources = local.tables
  }
}

resource "aws_iam_policy" "instance" {
  name   = "leasehold-prod-instance"
  policy = data.aws_iam_policy_document.instance.json
}

# For standby status, switchover, hold and resume.
data "aws_iam_policy_document" "operator" {
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    resources = local.tables

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["prod", "leasehold-token?prod", ".standby/prod", "leasehold-token?.standby/prod"]
    }
  }

  statement {
    actions   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
    resources = local.tables
  }
}

resource "aws_iam_policy" "operator" {
  name   = "leasehold-prod-operator"
  policy = data.aws_iam_policy_document.operator.json
}

# For doctor.
data "aws_iam_policy_document" "doctor" {
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    resources = local.tables

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["leasehold-doctor/probe", "leasehold-token?leasehold-doctor/probe"]
    }
  }

  statement {
    actions   = ["dynamodb:GetItem"]
    resources = local.tables

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["leasehold-doctor/clock"]
    }
  }

  statement {
    actions   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
    resources = local.tables
  }
}

resource "aws_iam_policy" "doctor" {
  name   = "leasehold-prod-doctor"
  policy = data.aws_iam_policy_document.doctor.json
}

# For standby status --wait 0.
data "aws_iam_policy_document" "observer" {
  statement {
    actions   = ["dynamodb:GetItem"]
    resources = local.tables

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["prod", "leasehold-token?prod"]
    }
  }

  statement {
    actions   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
    resources = local.tables
  }
}

resource "aws_iam_policy" "observer" {
  name   = "leasehold-prod-observer"
  policy = data.aws_iam_policy_document.observer.json
}

# For instances that claim --se_ip_prefix, besides the first.
data "aws_iam_policy_document" "prefix" {
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    resources = local.tables

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["se_ip_prefix/*", "leasehold-token?se_ip_prefix/*"]
    }
  }

  statement {
    actions   = ["dynamodb:Scan"]
    resources = local.tables
  }
}

resource "aws_iam_policy" "prefix" {
  name   = "leasehold-prod-prefix"
  policy = data.aws_iam_policy_document.prefix.json
}

resource "aws_cloudwatch_metric_alarm" "nobody_active" {
  alarm_name          = "leasehold-prod-nobody-active"
  alarm_description   = "No instance says that it is active, and no operator holds all passive; or none is seen."
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  evaluation_periods  = 2
  datapoints_to_alarm = 2
  treat_missing_data  = "breaching"
  alarm_actions       = var.topics
  ok_actions          = var.topics

  metric_query {
    id          = "all"
    expression  = "FILL(m0,0)+FILL(m1,0)+FILL(m2,0)+FILL(m3,0)"
    label       = "nobody-active"
    return_data = true
  }

  metric_query {
    id          = "m0"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_active"
      period      = 60
      stat        = "Maximum"
      dimensions  = { lease = "prod", pod = "east" }
    }
  }

  metric_query {
    id          = "m1"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_active"
      period      = 60
      stat        = "Maximum"
      dimensions  = { lease = "prod", pod = "west" }
    }
  }

  metric_query {
    id          = "m2"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_held"
      period      = 60
      stat        = "Maximum"
      dimensions  = { lease = "prod", pod = "east" }
    }
  }

  metric_query {
    id          = "m3"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_held"
      period      = 60
      stat        = "Maximum"
      dimensions  = { lease = "prod", pod = "west" }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "two_active" {
  alarm_name          = "leasehold-prod-two-active"
  alarm_description   = "Two instances say that they are active, for minutes."
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 2
  evaluation_periods  = 2
  datapoints_to_alarm = 2
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.topics
  ok_actions          = var.topics

  metric_query {
    id          = "all"
    expression  = "FILL(m0,0)+FILL(m1,0)"
    label       = "two-active"
    return_data = true
  }

  metric_query {
    id          = "m0"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_active"
      period      = 60
      stat        = "Minimum"
      dimensions  = { lease = "prod", pod = "east" }
    }
  }

  metric_query {
    id          = "m1"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_active"
      period      = 60
      stat        = "Minimum"
      dimensions  = { lease = "prod", pod = "west" }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "jeopardy" {
  alarm_name          = "leasehold-prod-jeopardy"
  alarm_description   = "Renewals of the active instance fail. It becomes passive when its term ends."
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.topics
  ok_actions          = var.topics

  metric_query {
    id          = "all"
    expression  = "MAX([m0,m1])"
    label       = "jeopardy"
    return_data = true
  }

  metric_query {
    id          = "m0"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_jeopardy"
      period      = 60
      stat        = "Maximum"
      dimensions  = { lease = "prod", pod = "east" }
    }
  }

  metric_query {
    id          = "m1"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_jeopardy"
      period      = 60
      stat        = "Maximum"
      dimensions  = { lease = "prod", pod = "west" }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "clock_skew" {
  alarm_name          = "leasehold-prod-clock-skew"
  alarm_description   = "An instance's clock and the table's are 2 s or more apart. Instances of Admiral itself compare clocks."
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 2
  evaluation_periods  = 5
  datapoints_to_alarm = 5
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.topics
  ok_actions          = var.topics

  metric_query {
    id          = "all"
    expression  = "MAX([m0,m1])"
    label       = "clock-skew"
    return_data = true
  }

  metric_query {
    id          = "m0"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_clock_apart_seconds"
      period      = 60
      stat        = "Minimum"
      dimensions  = { lease = "prod", pod = "east" }
    }
  }

  metric_query {
    id          = "m1"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_clock_apart_seconds"
      period      = 60
      stat        = "Minimum"
      dimensions  = { lease = "prod", pod = "west" }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "hold_forgotten" {
  alarm_name          = "leasehold-prod-hold-forgotten"
  alarm_description   = "An operator has held every instance passive for 4 hours: leasehold standby resume ends it."
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  evaluation_periods  = 4
  datapoints_to_alarm = 4
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.topics
  ok_actions          = var.topics

  metric_query {
    id          = "all"
    expression  = "MAX([m0,m1])"
    label       = "hold-forgotten"
    return_data = true
  }

  metric_query {
    id          = "m0"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_held"
      period      = 3600
      stat        = "Minimum"
      dimensions  = { lease = "prod", pod = "east" }
    }
  }

  metric_query {
    id          = "m1"
    return_data = false

    metric {
      namespace   = "Leasehold"
      metric_name = "leasehold_standby_held"
      period      = 3600
      stat        = "Minimum"
      dimensions  = { lease = "prod", pod = "west" }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "throttled_getitem" {
  alarm_name          = "leasehold-prod-throttled-getitem"
  alarm_description   = "DynamoDB refuses requests for the table's capacity."
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.topics
  ok_actions          = var.topics
  namespace           = "AWS/DynamoDB"
  metric_name         = "ThrottledRequests"
  period              = 60
  statistic           = "Sum"
  dimensions          = { TableName = "admiral-lease", Operation = "GetItem" }
}

resource "aws_cloudwatch_metric_alarm" "throttled_updateitem" {
  alarm_name          = "leasehold-prod-throttled-updateitem"
  alarm_description   = "DynamoDB refuses requests for the table's capacity."
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.topics
  ok_actions          = var.topics
  namespace           = "AWS/DynamoDB"
  metric_name         = "ThrottledRequests"
  period              = 60
  statistic           = "Sum"
  dimensions          = { TableName = "admiral-lease", Operation = "UpdateItem" }
}
