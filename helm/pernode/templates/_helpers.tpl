{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "pernode.selectorLabels" -}}
app.kubernetes.io/name: pernode-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pernode.labels" -}}
{{ include "pernode.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: pernode
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "pernode.image" -}}
{{- with .Values.agent.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end }}

{{- /* What every container of this chart has in common, whoever it runs as. */ -}}
{{- define "pernode.locked" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "pernode.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* The agent's volumes, and where it sees them: the paths are the node's own. Shared by the DaemonSet and the test. */ -}}
{{- define "pernode.volumes" -}}
- name: cgroup
  hostPath: {path: /sys/fs/cgroup, type: Directory}
- name: state
  hostPath: {path: {{ .Values.agent.stateDirectory | quote }}, type: DirectoryOrCreate}
{{- end }}

{{- define "pernode.volumeMounts" -}}
- {name: cgroup, mountPath: /sys/fs/cgroup, readOnly: true}
- {name: state, mountPath: {{ .Values.agent.stateDirectory | quote }}}
{{- end }}

{{- /* Values that a file gives as numbers arrive as floats, which would print as 1.6777216e+07. */ -}}
{{- define "pernode.flagValue" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end }}
