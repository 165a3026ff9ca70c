#!/bin/bash
# Writes the node's CNI configuration when the API server answers on the address of its Service.
# Pods that start earlier would dial the address before kube-proxy has set it up, and hang: what
# they send again follows the first packet's connection tracking entry, for 30 seconds in CoreDNS.
set -u

kubelet() { kubectl --kubeconfig=/etc/kubernetes/kubelet.conf --request-timeout=2s "$@" 2>/dev/null; }
admin() { kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=2s "$@" 2>/dev/null; }

until cidr=$(kubelet get node "$(hostname)" -o 'jsonpath={.spec.podCIDR}') && [ -n "$cidr" ]; do sleep 0.3; done
for _ in $(seq 100); do
  ip=$(admin get service kubernetes -o 'jsonpath={.spec.clusterIP}') &&
    curl -sk --max-time 0.5 -o /dev/null "https://$ip/livez" && break
  sleep 0.2
done
mkdir -p /etc/cni/net.d
sed "s#SUBNET#$cidr#" /kind/cni.conflist >/etc/cni/net.d/.10-ptp.conflist
mv /etc/cni/net.d/.10-ptp.conflist /etc/cni/net.d/10-ptp.conflist
