# shellcheck shell=bash
# Installs DynamoDB Local for tests: a part of scripts/engines, which has the functions called here.

java() { command -v javac >/dev/null || package default-jdk-headless; }

jars() { # jars FOLDER: a Maven project that copies the recipe's files there, none of what they depend on
  cat <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>leasehold</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>
    <configuration><outputDirectory>$1</outputDirectory><artifactItems>
POM
  # A path is GROUP/ARTIFACT/VERSION/FILE.TYPE, with the group's dots as slashes.
  awk '{
    n = split($2, part, "/"); group = part[1]; type = part[n]
    for (i = 2; i <= n - 3; i++) group = group "." part[i]
    sub(/.*\./, "", type)
    printf "<artifactItem><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version><type>%s</type></artifactItem>\n",
      group, part[n - 2], part[n - 1], type
  }' "$(recipe dynamodb)/jars.sha256"
  echo '    </artifactItems></configuration></plugin></plugins></build></project>'
}

install_dynamodb() {
  local recipe stamp dir
  recipe=$(recipe dynamodb)
  stamp=$(cat "$recipe"/Loopback.java "$recipe"/jars.sha256 | checksum)
  current dynamodb "$stamp" && return
  java && { command -v mvn >/dev/null || package maven; } || return
  dir=$(mktemp -d "$servers/.new-dynamodb-XXXXXX") || return
  jars "$dir" >"$dir/pom.xml" &&
    quietly "downloading DynamoDB Local" mvn -q -B -f "$dir/pom.xml" dependency:copy &&
    rm "$dir/pom.xml" &&
    (cd "$dir" && sed 's|  .*/|  |' "$recipe/jars.sha256" | checksum --check --quiet - >&2) &&
    javac -cp "$dir/*" -d "$dir" "$recipe/Loopback.java" ||
    { rm -rf "$dir"; return 1; }
  replace dynamodb "$dir" "$stamp"
}
