{{- define "htfi.labels" -}}
app.kubernetes.io/name: htfi
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "htfi.selector" -}}
app.kubernetes.io/name: htfi
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "htfi.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What a container of ours may do: nothing but compute, and write to its volumes. */}}
{{- define "htfi.container" -}}
image: {{ include "htfi.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "htfi.pod" -}}
automountServiceAccountToken: false
serviceAccountName: {{ .Release.Name }}-htfi
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "htfi.placement" -}}
{{- $class := index .root.Values.hardwareClasses .class | required (printf "hardwareClasses has no class %q" .class) -}}
nodeSelector: {{ toYaml $class.nodeSelector | nindent 2 }}
{{- with $class.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "htfi.selector" . | nindent 8 }}
{{- end }}

{{- define "htfi.resources" -}}
{{- (index .root.Values.hardwareClasses .class).resources | toYaml }}
{{- end }}

{{- define "htfi.claim" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .className }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ .size }}}}
{{- end }}
