module redline/catalogue/go

go 1.24
