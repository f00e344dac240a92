#!/bin/sh
# The words of the image. PENSTOCK_PROPERTIES holds settings, one `key: value` a line.
set -eu

word="${1:-help}"
[ $# -gt 0 ] && shift

# Run a command with `-D key=value` for every property before its other arguments.
# The first argument is the number of words of the command.
with_properties() {
    words=$1
    shift
    rest=$(($# - words))
    while [ "$words" -gt 0 ]; do # the command goes behind its arguments ...
        set -- "$@" "$1"
        shift
        words=$((words - 1))
    done
    properties="${PENSTOCK_PROPERTIES:-${FLINK_PROPERTIES:-}}"
    while IFS= read -r line; do
        key="${line%%:*}"
        [ -z "$key" ] || [ "$key" = "$line" ] || set -- "$@" -D "$key=${line#*: }"
    done <<PROPERTIES
$properties
PROPERTIES
    while [ "$rest" -gt 0 ]; do # ... and they go behind the properties
        set -- "$@" "$1"
        shift
        rest=$((rest - 1))
    done
    exec "$@"
}

case "$word" in
service | jobmanager)
    with_properties 12 penstock cluster start --foreground --host 0.0.0.0 --port 8081 \
        --dir /tmp/penstock --ha-dir "${PENSTOCK_HA_DIR:-/var/lib/penstock}" "$@"
    ;;
worker | taskmanager)
    spark="$(python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')"
    exec "$spark/bin/spark-class" org.apache.spark.deploy.worker.Worker \
        "spark://${JOB_MANAGER_RPC_ADDRESS:-spark-master}:7077" "$@"
    ;;
master)
    spark="$(python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')"
    exec "$spark/bin/spark-class" org.apache.spark.deploy.master.Master --host 0.0.0.0 "$@"
    ;;
application | standalone-job)
    with_properties 6 penstock run-application --host 0.0.0.0 --port 8081 "$@"
    ;;
history-server)
    exec penstock history-server --host 0.0.0.0 --port 8082 "$@"
    ;;
help)
    echo "usage: service | worker | master | application [OPTIONS] PROGRAM [ARGUMENTS] | history-server | COMMAND"
    ;;
*)
    exec "$word" "$@"
    ;;
esac
