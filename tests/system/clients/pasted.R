# Runs the lines of a page, one expression after another, as they are pasted into R; what an expression prints must be
# what the lines with #> after it say. The arguments are the file with these lines, and a file for pictures.
run_pasted <- function(path, pictures) {
  pdf(pictures)
  lines <- readLines(path, encoding = "UTF-8")
  expressions <- parse(path, keep.source = TRUE, encoding = "UTF-8")
  ends <- c(vapply(attr(expressions, "srcref"), `[`, 0L, 3L), length(lines))
  n_promised <- 0
  for (i in seq_along(expressions)) {
    printed <- capture.output({
      evaluated <- withVisible(eval(expressions[[i]], globalenv()))
      if (evaluated$visible) print(evaluated$value)
    })
    between <- lines[ends[i] + seq_len(ends[i + 1] - ends[i])]
    promised <- trimws(sub("^#> ?", "", grep("^#>", between, value = TRUE)), "right")
    n_promised <- n_promised + length(promised)
    if (!identical(trimws(printed, "right"), promised))
      stop(paste(c(deparse(expressions[[i]]), "prints", printed, "and not", promised), collapse = "\n"))
  }
  stopifnot(n_promised > 0)
}
do.call(run_pasted, as.list(commandArgs(trailingOnly = TRUE)))
