echo mail
