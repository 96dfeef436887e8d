module samples

go 1.19

require heddle v0.0.0

replace heddle => ../../bindings/go
