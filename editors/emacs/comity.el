;;; comity.el --- Help for robots.txt, ai.txt and their like  -*- lexical-binding: t -*-

(require 'eglot)

(define-derived-mode comity-mode prog-mode "comity"
  "Major mode for what a site says to crawlers."
  (setq-local comment-start "# ")
  (modify-syntax-entry ?# "<" comity-mode-syntax-table)
  (modify-syntax-entry ?\n ">" comity-mode-syntax-table))

(add-to-list 'auto-mode-alist '("/\\(robots\\|ai\\|automation-preferences\\)\\.txt\\'" . comity-mode))
(add-to-list 'eglot-server-programs '(comity-mode . ("comity" "languageserver")))
(add-hook 'comity-mode-hook #'eglot-ensure)

(provide 'comity)
;;; comity.el ends here
