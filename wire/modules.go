package wire

// EncodeModuleVersions is the answer to {modules.v1}/NAMESPACE/NAME/SYSTEM/versions.
// There is exactly one element in modules (checklist 75).
func EncodeModuleVersions(versions []string) *Document {
	var w writer
	w.WriteString(`{"modules":[{"versions":[`)
	for i, v := range versions {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(`{"version":`)
		w.value(v)
		w.WriteByte('}')
	}
	w.WriteString(`]}]}`)
	return w.document(nil)
}
