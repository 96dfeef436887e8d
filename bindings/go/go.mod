module heddle.internal/heddle

go 1.19
