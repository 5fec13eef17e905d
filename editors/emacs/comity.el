;;; comity.el --- Help for robots.txt, ai.txt and their like  -*- lexical-binding: t -*-

;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; Needed: pip install "comity[languageserver]".

(require 'eglot)
(require 'nxml-mode)
(require 'mhtml-mode)

(defgroup comity nil
  "What a site says to crawlers."
  :group 'tools)

(defcustom comity-command '("comity" "languageserver")
  "The command that starts the language server, and its arguments."
  :type '(repeat string))

(defvar comity-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    ;; Eglot completes symbols: a path is one.
    (dolist (character '(?. ?? ?@ ?~ ?! ?^))
      (modify-syntax-entry character "_" table))
    (dolist (character '(?\" ?' ?`))
      (modify-syntax-entry character "." table))
    table))

;;;###autoload
(define-derived-mode comity-mode prog-mode "comity"
  "Major mode for robots.txt, ai.txt, trust.txt and automation-preferences.txt."
  (setq-local comment-start "# "
              completion-ignore-case t
              tab-width 2)
  (eglot-ensure))

;;;###autoload
(define-derived-mode comity-json-mode js-mode "comity-json"
  "Major mode for tdmrep.json."
  (eglot-ensure))

;;;###autoload
(define-derived-mode comity-xml-mode nxml-mode "comity-xml"
  "Major mode for RSL, and for ai.txt as XML."
  (eglot-ensure))

;;;###autoload
(define-derived-mode comity-html-mode mhtml-mode "comity-html"
  "Major mode for pages, whose meta elements speak to crawlers."
  (eglot-ensure))

(dolist (entry '(("/\\(?:robots\\|ai\\|trust\\|automation-preferences\\)\\.txt\\'" . comity-mode)
                 ("/tdmrep\\.json\\'" . comity-json-mode)
                 ("/\\(?:ai\\|license\\|[^/]*rsl[^/]*\\)\\.xml\\'" . comity-xml-mode)))
  (add-to-list 'auto-mode-alist entry))

(add-to-list 'eglot-server-programs
             (cons '(comity-mode comity-json-mode comity-xml-mode comity-html-mode)
                   (lambda (&rest _) comity-command)))

(defun comity-other-form ()
  "Show the other form of this ai.txt: XML of text, text of XML."
  (interactive)
  (let* ((uri (if (fboundp 'eglot-path-to-uri)
                  (eglot-path-to-uri buffer-file-name)
                (eglot--path-to-uri buffer-file-name)))
         (form (jsonrpc-request (or (eglot-current-server) (user-error "The language server does not run"))
                                :workspace/executeCommand
                                (list :command "comity.otherForm" :arguments (vector uri)))))
    (unless form
      (user-error "This file has no other form"))
    (pop-to-buffer (generate-new-buffer (plist-get form :name)))
    (insert (plist-get form :text))
    (goto-char (point-min))))

(provide 'comity)
;;; comity.el ends here
