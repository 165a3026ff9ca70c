# Imports /images.tar into the containerd of the root that it runs in, as Kind does: the layers are
# unpacked when they are first used.
set -e
mount -t tmpfs tmpfs /run
containerd --log-level error >/tmp/containerd.log 2>&1 &
for _ in $(seq 150); do
  ctr version >/dev/null 2>&1 && break
  sleep 0.2
done
ctr -n k8s.io images import --all-platforms --no-unpack --digests /images.tar || {
  cat /tmp/containerd.log
  exit 1
}
kill %1
wait || true
rm -f /tmp/containerd.log
