# SPDX-License-Identifier: Apache-2.0
"""Container images without Docker: archives made from static binaries, the same bytes each time.

The format is what `docker save` writes and `ctr images import` reads: one layer, a configuration,
a manifest. Names and times are fixed, so equal files give an equal image ID.

    build_image("agent.tar", "localhost/agent:1", {"/agent": Path("build/agent")},
                entrypoint=["/agent"], user="65532:65532")
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

from .errors import LabError

DEFAULT_DIRECTORIES = ("/dev", "/etc", "/proc", "/run", "/sys", "/tmp")
_EPOCH = "1970-01-01T00:00:00Z"


def _entry(name: str, kind: bytes, mode: int, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name.lstrip("/"))
    info.type, info.mode, info.size, info.mtime = kind, mode, size, 0
    return info


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")[:-1]
    return ["/" + "/".join(parts[:i + 1]) for i in range(len(parts))]


def _layer(files: dict[str, Path | bytes], directories: set[str]) -> bytes:
    """The root file system as a tar: directories first, then files, both in order of name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(directories):
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o1777 if name == "/tmp" else 0o755))
        for name in sorted(files):
            source = files[name]
            if isinstance(source, Path):
                data, mode = source.read_bytes(), 0o755 if os.access(source, os.X_OK) else 0o644
            else:
                data, mode = source, 0o644
            tar.addfile(_entry(name, tarfile.REGTYPE, mode, len(data)), io.BytesIO(data))
    return out.getvalue()


def build_image(archive: Path | str, tag: str, files: dict[str, Path | bytes], *,
                entrypoint: list[str], command: list[str] | None = None,
                env: dict[str, str] | None = None, user: str = "", working_directory: str = "/",
                directories: tuple[str, ...] = DEFAULT_DIRECTORIES) -> str:
    """Writes an image archive; returns the image ID (sha256:…).

    files maps paths in the image to files of this machine, or to bytes; a file's mode is 755 when
    it may be run, else 644; everything belongs to root.
    """
    if ":" not in tag.rpartition("/")[2] or "/" not in tag:
        raise LabError(f"image name {tag!r}: write it as REGISTRY/NAME:TAG, such as localhost/agent:1")
    for name, source in files.items():
        if not name.startswith("/") or ".." in name.split("/"):
            raise LabError(f"{name!r}: a path in the image must be absolute")
        if isinstance(source, Path) and not source.is_file():
            raise LabError(f"{source}: no such file to put into image {tag}")
    all_directories = set(directories).union(*(_parents(name) for name in files))
    layer = _layer(files, all_directories)
    layer_digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "created": _EPOCH,
        "config": {"Entrypoint": entrypoint, "Cmd": command or None, "User": user,
                   "Env": [f"{k}={v}" for k, v in sorted((env or {"PATH": "/"}).items())],
                   "WorkingDir": working_directory},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created": _EPOCH, "created_by": "pernode"}],
    }, sort_keys=True, separators=(",", ":")).encode()
    config_digest = hashlib.sha256(config).hexdigest()
    manifest = json.dumps([{"Config": f"{config_digest}.json", "RepoTags": [tag],
                            "Layers": [f"{layer_digest}.tar"]}], separators=(",", ":")).encode()
    _write_archive(Path(archive), ((f"{config_digest}.json", config),
                                   (f"{layer_digest}.tar", layer), ("manifest.json", manifest)))
    return f"sha256:{config_digest}"


def _write_archive(archive: Path, members: tuple[tuple[str, bytes], ...]) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=archive.parent, prefix=".part-", delete=False) as part:
        with tarfile.open(fileobj=part, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for name, data in members:
                tar.addfile(_entry(name, tarfile.REGTYPE, 0o644, len(data)), io.BytesIO(data))
    os.chmod(part.name, 0o644)
    os.replace(part.name, archive)


def archive_tags(archive: Path) -> list[str]:
    """The names of the images in an archive; an error when it is not one."""
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile("manifest.json")
            manifest = json.load(member) if member else []
        return [tag for image in manifest for tag in image.get("RepoTags") or []]
    except (OSError, tarfile.TarError, KeyError, ValueError, AttributeError, TypeError) as error:
        raise LabError(f"{archive}: not an image archive as `docker save` or `cluster build-image` "
                       f"writes them ({error})") from error
