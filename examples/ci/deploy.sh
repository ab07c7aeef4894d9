#!/bin/bash
# deploy.sh TARGET TOKEN deploys to TARGET, unless a later holder has deployed there already: that
# deployment's token is higher. The target itself compares the tokens, so that a job which was
# paused, and whose lease another job has taken meanwhile, changes nothing.
set -euo pipefail
target=${DEPLOY_DIR:?}/$1
token=$2
exec 8>>"$target.token"
flock 8
newest=$(cat "$target.token")
if [ "$token" -lt "${newest:-0}" ]; then
  echo "stale token $token: $target was deployed under $newest" >&2
  exit 1
fi
echo "$token" >"$target.token"
${DEPLOY_WITH:-true} "$target" "$token"
