student <- log(rbind(c(0.5, 0.3, 0.2), c(0.1, 0.1, 0.8)))
teacher <- rbind(c(0.6, 0.3, 0.1), c(0, 0.2, 0.8))

test_that("the loss is what its definition says", {
  client <- service()
  terms <- ifelse(teacher > 0, teacher * (log(teacher) - student), 0)
  expect_equal(kl_div(student, teacher, reduction = "sum", client = client), sum(terms))
  expect_equal(kl_div(student, teacher, reduction = "batchmean", client = client), sum(terms) / 2)
  expect_equal(kl_div(student, teacher, reduction = "none", dim = -1, client = client), rowSums(terms))
  expect_equal(kl_div(student, teacher, reduction = "none", client = client), terms)
  expect_equal(kl_div(-(1:3), c(0, 0, 1), reduction = "sum", client = client), 3)
  array <- array(log(1:24 / 25), 2:4)
  expect_equal(kl_div(array, 2 * exp(array), reduction = "none", dim = c(0, 2), client = client), apply(2 * exp(array) * log(2), 2, sum))
  mask <- matrix(c(TRUE, FALSE, TRUE, TRUE, TRUE, FALSE), 2)
  expect_equal(kl_div(student, teacher, reduction = "sum", mask = mask, client = client), sum(terms[mask]))
  expect_equal(kl_div(student, teacher, reduction = "sum", weight = matrix(1:6, 2), client = client), sum(terms * 1:6))
  expect_equal(kl_div(student, teacher, reduction = "sum", dtype = "float32", client = client), sum(terms), tolerance = 1e-6)
  expect_equal(kl_div(-Inf, 1, reduction = "sum", client = client), Inf)
})

test_that("indices of a sparse target count from 1", {
  client <- service()
  top <- rbind(c(2L, 1L), c(3L, 2L))
  values <- matrix(teacher[cbind(c(row(top)), c(top))], 2)
  rest <- 1 - rowSums(values)
  named <- matrix(student[cbind(c(row(top)), c(top))], 2)
  terms <- ifelse(values > 0, values * (log(values) - named), 0)
  rests <- ifelse(rest > 1e-9, rest * (log(rest) - log(1 - rowSums(exp(named)))), 0)
  for (indices in list(top, top + 0, rbind(top, NA)[1:2, ]))
    expect_equal(kl_div(student, values, indices = indices, reduction = "none", client = client), rowSums(terms) + rests)
  expect_equal(kl_div(student, values, indices = top, tail = "ignore", reduction = "sum", client = client), sum(terms))
  result <- kl_div(student, values, indices = top, tail = "ignore", reduction = "sum", gradient = "input", client = client)
  expect_equal(result$gradient$input, rbind(c(-0.6, -0.3, 0), c(0, -0.2, -0.8)))
  logits <- log(values) + 3
  expect_equal(kl_div(student, logits, indices = top, log_normalizer = c(3, 3), target_space = "logit", tail = "ignore",
                      reduction = "sum", client = client), sum(terms))
  masked <- rbind(top[1, ], NA)
  expect_equal(kl_div(student, values, indices = masked, mask = c(TRUE, FALSE), tail = "ignore", reduction = "sum", client = client),
               sum(terms[1, ]))
  padded <- cbind(top, NA)
  expect_equal(kl_div(student, cbind(values, NaN), indices = padded, tail = "ignore", reduction = "sum", client = client), sum(terms))
  expect_error(kl_div(student, values, indices = top - 1, client = client), "from 1 on")
  expect_error(kl_div(student, values, indices = top + 0.5, client = client), "whole numbers")
})

test_that("warnings are an attribute, gradients a list", {
  client <- service()
  expect_match(attr(kl_div(student, teacher, client = client), "warnings"), "batchmean")
  expect_match(attr(kl_div(exp(student), teacher, reduction = "sum", client = client), "warnings"), "input_space=prob")
  result <- kl_div(student, teacher, reduction = "sum", gradient = c("input", "target"), client = client)
  expect_equal(result$gradient$input, -teacher)
  expect_equal(dim(result$gradient$target), c(2L, 3L))
  expect_named(kl_div(student, teacher, partial = TRUE, client = client), c("sum", "divisor"))
  expect_error(kl_div(student, teacher[, 1:2], client = client), class = "httr2_http_422")
  expect_error(kl_div(student, "a", client = client), "character")
  expect_error(kl_div(student, teacher, "sum", client = client), "names")
})

test_that("labels are labels, whatever they look like", {
  client <- service()
  n <- 97 * 12
  df <- data.frame(zip = rep(c("00501", "10001", "501"), length.out = n), code = factor(rep(1:97, 12)), flag = rep(c(TRUE, FALSE, NA), length.out = n),
                   name = rep(c("M\u00fcller", "\u65e5\u672c", "a\"b,c"), length.out = n))
  df$id <- rep(integer64(0, 0, 0, 0, 0, 0, 0x20, 0, 1, 0, 0, 0, 0, 0, 0x20, 0), n / 2)
  class(df$id) <- "integer64"
  made <- kl_reference(df, "labels of R", client = client)
  expect_equal(made$kind, rep("labels", 5))
  expect_setequal(labels_of(made, "zip"), c("00501", "10001", "501"))
  expect_length(labels_of(made, "code"), 97)
  expect_setequal(labels_of(made, "flag"), c("true", "false"))
  expect_setequal(labels_of(made, "name"), c("M\u00fcller", "\u65e5\u672c", "a\"b,c"))
  expect_setequal(labels_of(made, "id"), c("9007199254740992", "9007199254740993"))
  expect_equal(kl_evaluate(df, "labels of R", client = client)$kl, rep(0, 5))
})

test_that("a group has the name that it is given", {
  client <- service()
  for (group in c("team/fraud", "%2F", "a b", "?", "#", "..x", "+", "\u00fc")) {
    made <- kl_reference(data.frame(x = c(1, 2, 3)), group, window = "86400s", client = client)
    expect_equal(attr(made, "json")$monitors[[1]]$group, group)
    expect_equal(kl_observe(data.frame(x = 1), group, timestamp = "2026-01-01", client = client)$name, "x")
    expect_equal(nrow(kl_windows(group, "x", client = client)), 1)
  }
})

test_that("windows, events and pictures", {
  client <- service()
  set.seed(1)
  orders <- function(n, shift = 0) data.frame(price = rlnorm(n, 3 + shift), country = sample(c("de", "fr", NA), n, TRUE))
  kl_reference(orders(2000), "shop of R", window = "86400s", client = client)
  for (day in 0:9)
    results <- kl_observe(orders(300, if (day > 6) 1 else 0), "shop of R", timestamp = as.Date("2026-01-01") + day, client = client)
  expect_equal(results$verdict, c("critical", "ok"))
  expect_equal(results$n, c(300, 300))
  windows <- kl_windows("shop of R", "price", limit = 3, client = client)
  expect_equal(as.Date(windows$start), as.Date("2026-01-01") + 0:9)
  expect_equal(windows$verdict[10], "critical")
  expect_equal(nrow(kl_windows("shop of R", "price", from = as.POSIXct("2026-01-09", tz = "UTC"), client = client)), 2)
  events <- kl_events("shop of R", client = client)
  expect_true("critical" %in% events$to)
  pdf(NULL)
  on.exit(dev.off())
  expect_identical(plot(windows, main = "price"), windows)
})

test_that("what the service says of a table is a warning", {
  client <- service()
  expect_warning(kl_reference(data.frame(x = 1:10 %% 3, at = as.POSIXct("2026-01-01", tz = "UTC") + 3600 * 1:10), "told", window = 1000, client = client), class = "kldiv_dates")
  made <- kl_reference(data.frame(at = as.POSIXct("2026-01-01", tz = "UTC") + 3600 * 1:10), "told", window = 1000, include = "at", client = client)
  expect_equal(made$kind, "numbers")
  expect_warning(kl_evaluate(data.frame(x = 1, at = 1.7e9, y = 2), "told", client = client), class = "kldiv_column_unknown")
})

test_that("tensors of torch", {
  skip_if_not_installed("torch")
  client <- service()
  input <- torch::torch_tensor(student, dtype = torch::torch_float64(), requires_grad = TRUE)
  loss <- kl_div(input, torch::torch_tensor(teacher, dtype = torch::torch_float64()), reduction = "batchmean", client = client)
  loss$backward()
  expect_equal(torch::as_array(input$grad), -teacher / 2)
})
