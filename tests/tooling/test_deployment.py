"""The recipes of `deploy/`: what they start exists, and they keep the rules that are easily got wrong."""

import configparser
import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from penstock.cli.main import build_parser

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture
def manifests():
    """The Kubernetes objects by their kind."""
    text = (DEPLOY / "kubernetes" / "session.yaml").read_text(encoding="utf-8")
    return {manifest["kind"]: manifest for manifest in yaml.safe_load_all(text)}


KUBERNETES = "1.31"
CHART_VALUES = {
    "all": {"tokenSecret": "penstock-tokens", "settings": {"web.cancel.enable": "false"}},
    "no tokens": {"tokenSecret": "", "settings": {}},
}


def rendered(values):
    """The chart's template as Helm fills it: as much of its language as the template uses."""
    chart = DEPLOY / "helm" / "penstock"
    values = {**yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8")), **values}
    lines, included = [], [True]
    ranged = None
    for line in (chart / "templates" / "session.yaml").read_text(encoding="utf-8").splitlines():
        if condition := re.search(r"{{- if \.Values\.(\w+) }}", line):
            included.append(bool(values[condition[1]]))
        elif ranging := re.search(r"{{- range \$key, \$value := \.Values\.(\w+) }}", line):
            ranged = values[ranging[1]]
        elif "{{- end }}" in line:
            if ranged is None:
                included.pop()
            ranged = None
        elif not all(included):
            continue
        elif ranged is not None:
            for key, value in ranged.items():
                lines.append(line.replace("{{ $key }}", key).replace("{{ $value }}", value))
        elif block := re.search(r"{{- toYaml \.Values\.(\w+) \| nindent (\d+) }}", line):
            text = yaml.safe_dump(values[block[1]])
            lines += [" " * int(block[2]) + each for each in text.splitlines()]
        else:
            filled = line.replace("{{ .Release.Name }}", "my-release")
            lines.append(re.sub(r"{{ \.Values\.(\w+) }}", lambda found: str(values[found[1]]), filled))
    assert not any("{{" in line for line in lines)
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["session.yaml", "application.yaml", *CHART_VALUES])
def test_o144_every_object_fits_the_schema_of_kubernetes(name):
    if name in CHART_VALUES:
        text = rendered(CHART_VALUES[name])
    else:
        text = (DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")
    objects = list(yaml.safe_load_all(text))
    assert len(objects) >= 2
    for each in objects:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


def test_o144_a_wrong_field_does_not_fit_the_schema(manifests):
    manifests["Deployment"]["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifests["Deployment"], KUBERNETES, strict=True)


def test_o144_there_are_never_two_services_at_a_time(manifests):
    deployment = manifests["Deployment"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})


def test_o144_the_service_has_no_privileges_and_no_open_door(manifests):
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "penstock.security.auth: token" in container["env"][0]["value"]
    assert {"PersistentVolumeClaim", "Service", "NetworkPolicy"} < manifests.keys()


def test_o144_probes_use_a_name_that_the_service_accepts(manifests):
    (container,) = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


def test_o141_the_compose_file_has_a_service_a_master_and_two_workers():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    assert {"service", "spark-master", "worker"} < services.keys()
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["service"]["ports"] == ["127.0.0.1:8081:8081"]
    assert (DEPLOY / services["service"]["build"]["context"]).resolve() == DEPLOY.parent


@pytest.mark.parametrize("unit", ["penstock.service", "penstock-history.service"])
def test_o142_units_start_commands_that_exist_and_restart_them(unit):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(DEPLOY / "systemd" / unit, encoding="utf-8")
    assert parser["Service"]["Restart"] == "always"
    program, *arguments = parser["Service"]["ExecStart"].split()
    assert program.endswith("/penstock")
    build_parser().parse_args(arguments)


@pytest.mark.parametrize(
    ("words", "last"),
    [(["service", "--master", "local[2]"], ["--master", "local[2]"]), (["application", "job.py", "--x y"], None)],
)
def test_o140_properties_of_the_image_become_settings(tmp_path, words, last):
    fake = tmp_path / "penstock"
    fake.write_text('#!/bin/sh\nfor argument in "$@"; do echo "$argument"; done\n', encoding="utf-8")
    fake.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(DEPLOY / "docker" / "entrypoint.sh"), *words],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PENSTOCK_PROPERTIES": "a.key: b c\n\nrest.address: http://host:1\n"},
        capture_output=True,
        text=True,
        check=True,
    )
    arguments = done.stdout.splitlines()
    expected = last or words[1:]
    assert arguments[-len(expected) :] == expected
    options = build_parser().parse_args(arguments)
    assert options.settings == ["a.key=b c", "rest.address=http://host:1"]
    assert (options.host, options.port) == ("0.0.0.0", "8081")


def test_o140_the_image_does_not_run_as_root():
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert "USER 9999" in text
    assert "/health/live" in text


def test_o144_the_chart_has_the_objects_of_the_manifests():
    chart = DEPLOY / "helm" / "penstock"
    template = (chart / "templates" / "session.yaml").read_text(encoding="utf-8")
    plain = (DEPLOY / "kubernetes" / "session.yaml").read_text(encoding="utf-8")
    kinds = [line for line in plain.splitlines() if line.startswith("kind:")]
    assert [line for line in template.splitlines() if line.startswith("kind:")] == kinds
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    assert {"image", "storage", "tokenSecret", "settings", "resources"} == values.keys()
    assert template.count("{{") == template.count("}}")
