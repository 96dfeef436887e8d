module heddle

go 1.19
