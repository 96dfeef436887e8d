module samples

go 1.19

require heddle.internal/heddle v0.1.0

replace heddle.internal/heddle => ../../bindings/go
