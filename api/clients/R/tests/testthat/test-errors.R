table <- data.frame(x = c(1, 2))

test_that("an error keeps its status and its class, whatever its body is", {
  for (case in c("busy", "empty", "odd", "array", "null", "broken")) {
    error <- expect_error(kl_observe(table, "g", client = answers(case, retries = 0)), class = "httr2_http_503")
    expect_equal(error$status, 503)
  }
  expect_match(conditionMessage(expect_error(kl_div(1, 1, client = answers("refused")), class = "httr2_http_422")), "input has shape [2, 2]", fixed = TRUE)
  expect_match(conditionMessage(expect_error(kl_windows("g", "x", client = answers("gateway", retries = 0)), class = "httr2_http_502")),
               "502 Bad Gateway Bad Gateway nginx")
  expect_match(conditionMessage(expect_error(kl_events(client = answers("timeout", retries = 0)), class = "httr2_http_504")), "upstream timed out")
  expect_match(conditionMessage(expect_error(kl_evaluate(table, "g", client = answers("braces")), class = "httr2_http_422")), "a {glue} of 100 %", fixed = TRUE)
})

test_that("what is not the service's is an error", {
  for (case in c("page", "nothing"))
    for (call in list(function(client) kl_observe(table, "g", client = client), function(client) kl_reference(table, "g", client = client),
                      function(client) kl_div(1, 1, client = client), function(client) kl_windows("g", "x", client = client),
                      function(client) kl_events(client = client), function(client) kl_evaluate(table, "g", client = client)))
      expect_error(call(answers(case)), "not the service's")
})

test_that("a write that is redirected is an error, for curl makes a GET of it", {
  error <- expect_error(kl_observe(table, "g", client = answers("moved")), class = "httr2_http_301")
  expect_match(conditionMessage(error), "redirected to http")
})

test_that("refusals for a time are repeated under one key", {
  results <- kl_observe(table, "g", client = answers("repeat"))
  expect_equal(nrow(results), 3)
  expect_length(unique(results$name), 1)
  expect_match(results$name[1], "^R-")
  expect_equal(kl_observe(table, "g", key = "mine", client = answers("repeat"))$name, rep("mine", 3))
  expect_error(kl_observe(table, "g", client = answers("busy", retries = 0)), class = "httr2_http_503")
})

test_that("a client shows no token, and takes its address from the environment", {
  client <- kl_client("http://me:secret@host/x/", token = "secret")
  expect_output(print(client), "<kldiv at http://host/x>", fixed = TRUE)
  expect_no_match(paste(capture.output(str(unclass(client)["url"]), format(client)), collapse = ""), "secret")
  url <- Sys.getenv("KLDIV_URL", NA)
  on.exit(if (is.na(url)) Sys.unsetenv("KLDIV_URL") else Sys.setenv(KLDIV_URL = url))
  Sys.setenv(KLDIV_URL = "http://elsewhere:1")
  expect_equal(kl_client()$url, "http://elsewhere:1")
  expect_error(kl_client("elsewhere"))
  expect_error(kl_div(1, 1, client = "http://x"), "kl_client")
})
