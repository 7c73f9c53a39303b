"""The experiments of Redberg and Wang (2021), reproduced, checked and compared with ours."""
